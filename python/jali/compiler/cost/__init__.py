"""What operations, keys and layouts cost, measured or counted, and the cheapest choice among costs
in tables."""
