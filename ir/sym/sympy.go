package sym
