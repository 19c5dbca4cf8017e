"""Risk models: readings for scorecards, and fitting a scorecard to a lender's outcomes.

`readings` computes the metrics that scorecards (`pipelines.scorecards`) read, and `coverage` how much of the evidence
for each was supplied. `events` finds events that cap a rating. `files`, `cohorts` and `fitted` turn a lender's outcomes
into a scorecard. Reports apply scorecards (`reports.risk`).
"""
