"""For orchestrators. `client.py` runs the command `streamql` for them; each orchestrator has a folder, and an extra of the package."""
