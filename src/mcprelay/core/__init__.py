"""The machines: values in, values out. No I/O, no clock, no loop; the drivers around them have those."""
