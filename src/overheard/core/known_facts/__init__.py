"""Facts that attackers know besides their view and that several questions share."""
