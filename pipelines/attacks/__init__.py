"""Attacks: changes to a ledger that make a business look better, and honest changes that look the same.

A trial (`pipelines.trials`) applies them to many customers and compares the ratings. `attacks.yaml` describes each
attack and lookalike in words; `registry` joins the words with the functions. Some are held out (`held_out`): their
author had not seen the rules that detect attacks, and nobody who works on these rules reads them.
"""
