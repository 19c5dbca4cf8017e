"""Scorecards: their form, the one that comes with Tidemark, and how a scorecard is fitted and measured."""
