"""What readings say of the chance of default: the scorecard that comes with Tidemark, and those fitted to outcomes.

`scorecard` is the form that both have; `default` the first; `readings` what they look at. `files`, `cohorts` and
`fitting` turn a lender's outcomes into a scorecard, `scorecard_file` keeps it. Reports apply it (`reports.risk`).
"""
