"""Programs beside single calls: tokens, success and time over real servers, and the break-even rule's decisions."""
