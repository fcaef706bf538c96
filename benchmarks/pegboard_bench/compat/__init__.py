"""Whether pip resolves Pegboard beside packages for agents, and what the library alone takes."""
