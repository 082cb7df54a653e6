//! A broker behind proxies and balancers, with the settings of operators: paths before the routes, idle connections, the
//! end of a broker.

mod base_path;
mod drain;
mod hosts;
mod idle;
mod sessions;
