//! The meta API over HTTP and the typed API: routes, bodies, codes, results, arguments.

mod arguments;
mod bodies;
mod codes;
mod corpus;
mod heads;
mod replies;
mod results;
mod smoke;
mod typed;
