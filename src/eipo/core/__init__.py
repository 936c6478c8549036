"""Pure functions of the method: each docstring is an equation, and docs/equations.md says where the paper has it."""
