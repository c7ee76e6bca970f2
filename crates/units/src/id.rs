//! Identifiers of nodes, links and flows: small dense indices, assigned in the order of the scenario file.

use std::fmt;

macro_rules! identity {
    ($(#[$text:meta])* $name:ident) => {
        $(#[$text])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the identifier as an index into a dense table.
            #[inline(always)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}", self.0)
            }
        }
    };
}

identity!(
    /// Identifies a host or a router.
    NodeId
);
identity!(
    /// Identifies one direction of a point-to-point link, or a whole shared medium.
    LinkId
);
identity!(
    /// Identifies one direction of a conversation: the interned five-tuple (protocol, addresses, ports).
    ///
    /// The two directions of a conversation have adjacent identifiers. The direction from the initiator to the acceptor
    /// has the even one.
    FlowId
);

impl FlowId {
    /// Returns the opposite direction of the same conversation.
    ///
    /// ```
    /// use fullpipe_units::FlowId;
    /// assert_eq!(FlowId(4).reverse(), FlowId(5));
    /// assert_eq!(FlowId(5).reverse(), FlowId(4));
    /// ```
    #[inline(always)]
    pub const fn reverse(self) -> FlowId {
        FlowId(self.0 ^ 1)
    }

    /// Returns whether this is the direction from the initiator to the acceptor.
    #[inline(always)]
    pub const fn is_forward(self) -> bool {
        self.0 & 1 == 0
    }
}
