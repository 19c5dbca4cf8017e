"""The learned model, which predicts the category of a transaction where no rule is sure.

`features` computes its input, `model` predicts, `calibration` gives the confidence, and `model_file` reads and writes
models. Prediction needs numpy and scipy only. Training, which needs scikit-learn, is in `enrichment.training`.
"""
