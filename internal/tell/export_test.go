package tell

// Most exports most.
const Most = most
