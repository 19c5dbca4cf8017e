"""Jobs, and waiting for one."""
