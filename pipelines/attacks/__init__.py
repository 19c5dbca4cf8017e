"""Attacks: what an applicant can do to a ledger to look better, and honest changes that look the same.

A benchmark applies them to many customers and asks what a report makes of it. `attacks.yaml` describes each attack
and lookalike in words; `registry` joins the words with the functions. The held-out ones (`held_out`) were written by
an author who has not seen the rules that detect them, and nobody who works on the rules reads them.
"""
