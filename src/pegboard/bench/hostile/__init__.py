"""What the gateway does under attack and fault: scenarios against a real `pegboard serve` on this machine."""
