"""Parameters, levels and bootstraps: the cheapest plan that is precise enough."""
