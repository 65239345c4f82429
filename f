{"value":"v","key":"k","headers":[["a","b"],["a","c"]]}
{"vale":1}
