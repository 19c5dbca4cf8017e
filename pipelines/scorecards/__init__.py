"""Scorecards: their form, the one that comes with Tidemark, and how one is fitted and measured."""
