"""The parts of every figure, shared by reports, metrics and rules: facts, terms, periods, exact numbers and lineage.

`facts` prepares customers' rows once; `words` defines terms such as revenue and debt service; `tables` sums; `lineage`
traces a figure back to its transactions.
"""
