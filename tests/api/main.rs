//! The meta API over HTTP and the typed API: routes, bodies, codes, results, arguments.

mod arguments;
mod authentication;
mod bodies;
mod codes;
mod corpus;
mod cutting;
mod heads;
mod replies;
mod results;
mod serve;
mod smoke;
mod stack;
mod typed;
