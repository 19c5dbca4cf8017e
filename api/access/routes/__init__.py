"""Routes of access: users, keys, approvals by a second person or key, the audit trail."""
