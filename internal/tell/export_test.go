package tell

// Most is for tests.
const Most = most
