package dashboard

// Web has the page's files, as they are embedded.
var Web = web
