"""The learned model: what a transaction is, told from labelled ones, where no rule is sure.

`features` says what the model looks at, `model` is what decides and its file, `training` makes one from labelled rows,
`evaluation` says how good it is, `labelled` reads labelled files. Deciding needs numpy and scipy only; scikit-learn is
imported by training alone.
"""
