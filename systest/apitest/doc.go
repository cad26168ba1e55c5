// Package apitest compares responses of the server with openapi.json, which describes them:
// all responses in the tests of its endpoints, and those to requests made for the comparison.
package apitest
