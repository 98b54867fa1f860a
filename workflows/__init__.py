"""The workflows: small, deterministic, ids only; they import the standard library and temporalio."""
