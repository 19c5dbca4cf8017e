"""Routes of access: approvals by a second person or key."""
