//! The web page in a browser: its views, what it shows to whom, and texts of servers that want to be more than text.

mod browser;
mod hostile;
mod keyboard;
mod pictures;
mod speed;
mod stage;
mod views;
