"""Engines that train many clients, all with the same result up to rounding."""
