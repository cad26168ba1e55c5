package door

// Replace puts v into c, which has room for one value, and drops an older value.
func Replace[T any](c chan T, v T) {
	for {
		select {
		case c <- v:
			return
		default:
		}
		select {
		case <-c:
		default:
		}
	}
}
