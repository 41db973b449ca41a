"""The stages that evaluate a candidate, and the devices and processes that run them."""
