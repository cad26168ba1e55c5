package httplock

// Methods are those of the wire.
var Methods = methods
