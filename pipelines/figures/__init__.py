"""What figures are made of, for reports, metrics and rules alike: facts, words, periods, exact numbers, lineage.

`facts` prepares customers' rows once; `words` says what counts as what; `tables` sums; `lineage` finds the way back.
"""
