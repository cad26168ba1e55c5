// Package apitest compares what the server answers with openapi.json, its description:
// every answer of the tests of its doors, and of requests made for it.
package apitest
