"""Winners as ordinary code: device code, host launcher, binding and test, in one folder."""
