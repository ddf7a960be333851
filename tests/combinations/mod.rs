//! Recipes, options, stages and troubles in every combination: what is promised holds in all of them.

mod cell;
mod changes;
mod copies;
mod holding;
mod holds;
mod lasting;
mod matrix;
mod meeting;
mod scene;
mod table;
mod trouble;
