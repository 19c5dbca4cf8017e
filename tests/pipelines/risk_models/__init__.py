"""Tests of the risk scorecards and of fitting them."""
