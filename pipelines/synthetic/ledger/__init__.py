"""A synthetic business's ledger: what is paid and received, and how a bank words it."""
