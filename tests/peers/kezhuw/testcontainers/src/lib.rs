//! Stands in for the crate of the same name: the same types and methods, as far as the tests of zookeeper-client call them.

mod container;
mod image;

/// Where containers are started.
pub mod clients {
    use crate::{container::Container, core::RunnableImage};

    /// The command line of Docker, so to speak.
    #[derive(Default)]
    pub struct Cli;

    impl Cli {
        /// Starts a server.
        pub fn run<T>(&self, image: RunnableImage<T>) -> Container<'_, T> {
            Container::start_new(image)
        }
    }
}

/// Descriptions of containers, and containers.
pub mod core {
    pub use crate::{
        container::{Container, LogStream},
        image::{Healthcheck, RunnableImage, WaitFor},
    };
}

/// Kinds of images.
pub mod images {
    /// Any image.
    pub mod generic {
        pub use crate::image::GenericImage;
    }
}
