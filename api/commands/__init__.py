"""The operator's commands, one module per thing they act on."""
