"""Risk models: readings for scorecards, and fitting a scorecard to a lender's outcomes.

`readings` selects the metrics that scorecards (`pipelines.scorecards`) read. `files`, `cohorts` and `fitted` turn a
lender's outcomes into a scorecard. Reports apply it (`reports.risk`).
"""
