package interp

func evalAdd(c *Call) ([]Value, error) { return nil, nil }
