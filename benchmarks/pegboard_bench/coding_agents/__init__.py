"""Real coding agents, directly before a provider and through the gateway: what they lose, and what they are billed."""
