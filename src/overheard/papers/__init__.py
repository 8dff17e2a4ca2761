"""Tables and figures of the papers, run anew and held beside what was published."""
