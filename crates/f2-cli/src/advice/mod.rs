//! Errors of the libraries as failures of the program: an exit code, and what the user can do.

mod corpus;
mod exchange;
mod experiment;
mod hub;
mod model;
