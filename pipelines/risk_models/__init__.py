"""Risk models: readings for scorecards, and fitting a scorecard to a lender's outcomes.

`readings` computes the metrics that scorecards (`pipelines.scorecards`) read, and `coverage` how much of the evidence
for each was supplied: `needed_evidence` says which evidence a metric needs, and `covered_days` which days of accounts
are proven, near a row or expected. `events` finds events that cap a rating. `files`, `cohorts` and `fitted` turn a
lender's outcomes into a scorecard. Reports apply scorecards (`reports.risk`).
"""
