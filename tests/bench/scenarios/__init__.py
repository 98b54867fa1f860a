"""The scenarios: each module measures one thing on all contenders."""
