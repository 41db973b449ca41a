"""How people and programs reach kopt: the command line. Wiring only, no stage of its own."""
