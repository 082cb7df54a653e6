//! A queue in which callers take turns, however many items each of them has in it. Pure: no IO, no async.

use std::collections::{HashMap, VecDeque};

/// The caller that an item, a connection or memory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    number: u64,
    is_anonymous: bool,
    is_local: bool,
}

impl Owner {
    /// The broker itself.
    pub const BROKER: Self = Self {
        number: 0,
        is_anonymous: false,
        is_local: false,
    };

    pub(crate) const fn new(number: u64, is_anonymous: bool) -> Self {
        Self {
            number,
            is_anonymous,
            is_local: false,
        }
    }

    /// Returns one of several connections on this machine, each with a separate share.
    pub(crate) const fn local(number: u64) -> Self {
        Self {
            number,
            is_anonymous: false,
            is_local: true,
        }
    }

    /// Whether the broker cannot tell this caller from another one by a credential or an address: both are the same caller,
    /// or two connections on this machine, because one client may have several.
    #[inline]
    pub fn is_like(self, other: Self) -> bool {
        self == other || (self.is_local && other.is_local)
    }

    /// Whether it is one of the callers without a credential, who share half of what another caller has.
    pub const fn is_anonymous(self) -> bool {
        self.is_anonymous
    }

    /// Returns a number that no other owner of the process has.
    pub const fn number(self) -> u64 {
        self.number
    }
}

/// A queue with a bound. While one caller waits alone it may fill the queue; while another waits, it has at most its
/// part of the places, and items that it has beyond this part give their places to others.
#[derive(Debug)]
pub struct TurnQueue<T> {
    items: HashMap<Owner, VecDeque<T>>,
    /// The owners with items, in the order of their turns.
    turns: VecDeque<Owner>,
    len: usize,
    anonymous: usize,
    places: usize,
    share: usize,
}

impl<T> TurnQueue<T> {
    /// Makes a queue of `places`. While another caller waits, one caller has one part in `parts` of them.
    pub fn new(places: usize, parts: usize) -> Self {
        Self {
            items: HashMap::new(),
            turns: VecDeque::new(),
            len: 0,
            anonymous: 0,
            places,
            share: (places / parts).max(1),
        }
    }

    /// Returns the number of items.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the queue is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an item. The result is the newest item of another caller if that one had to leave; the error is the item
    /// itself if its owner has its part of the places, or if no other caller has more.
    pub fn push(&mut self, owner: Owner, item: T) -> Result<Option<T>, T> {
        if !self.may_add(owner) {
            return Err(item);
        }
        let left = match self.len < self.places {
            true => None,
            false => match self.largest_beside(owner) {
                Some(largest) => self.take_newest(largest),
                None => return Err(item),
            },
        };
        self.push_bounded(owner, item);
        Ok(left)
    }

    /// Adds an item whose number is bounded elsewhere, so that it always has a place.
    pub fn push_bounded(&mut self, owner: Owner, item: T) {
        let own = self.items.entry(owner).or_default();
        if own.is_empty() {
            self.turns.push_back(owner);
        }
        own.push_back(item);
        self.len += 1;
        self.anonymous += usize::from(owner.is_anonymous);
    }

    /// Takes the oldest item of the caller whose turn it is.
    pub fn pop(&mut self) -> Option<T> {
        let owner = self.turns.pop_front()?;
        let own = self.items.get_mut(&owner)?;
        let item = own.pop_front()?;
        match own.is_empty() {
            true => drop(self.items.remove(&owner)),
            false => self.turns.push_back(owner),
        }
        self.removed(owner);
        Some(item)
    }

    /// Takes an item of this owner out of the queue.
    pub fn remove(&mut self, owner: Owner, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let own = self.items.get_mut(&owner)?;
        let at = own.iter().position(is_it)?;
        let item = own.remove(at)?;
        self.ended(owner);
        Some(item)
    }

    /// Takes an item of any owner out of the queue.
    pub fn remove_any(&mut self, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let mut owners = self.items.iter();
        let owner = *owners.find(|(_, own)| own.iter().any(&is_it))?.0;
        self.remove(owner, is_it)
    }

    /// Takes all items, owner by owner.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.turns.clear();
        (self.len, self.anonymous) = (0, 0);
        std::mem::take(&mut self.items).into_values().flatten()
    }

    /// Whether the owner's part of the places has room. Callers without a credential have half a part together.
    fn may_add(&self, owner: Owner) -> bool {
        let own = self.count(owner);
        let waits_alone = self.len == own;
        let is_first_kind = !owner.is_anonymous || self.len == self.anonymous;
        (waits_alone || own < self.share) && (is_first_kind || self.anonymous < self.half_share())
    }

    fn half_share(&self) -> usize {
        (self.share / 2).max(1)
    }

    fn count(&self, owner: Owner) -> usize {
        self.items.get(&owner).map_or(0, VecDeque::len)
    }

    /// Returns the owner whose newest item leaves for one of `owner`: the largest of those without a credential, if
    /// these have more than their part, else the largest of all. It has more items than `owner` will have.
    fn largest_beside(&self, owner: Owner) -> Option<Owner> {
        let own = self.count(owner);
        let are_too_many = !owner.is_anonymous && self.anonymous > self.half_share();
        let sizes = self
            .items
            .iter()
            .map(|(other, items)| (items.len(), *other));
        let counted =
            sizes.filter(|(_, other)| *other != owner && (!are_too_many || other.is_anonymous));
        let (size, largest) = counted.max()?;
        (are_too_many || size > own + 1).then_some(largest)
    }

    fn take_newest(&mut self, owner: Owner) -> Option<T> {
        let item = self.items.get_mut(&owner)?.pop_back()?;
        self.ended(owner);
        Some(item)
    }

    /// Notes that an item of the owner left outside of its turn.
    fn ended(&mut self, owner: Owner) {
        if self.count(owner) == 0 {
            self.items.remove(&owner);
            self.turns.retain(|other| *other != owner);
        }
        self.removed(owner);
    }

    fn removed(&mut self, owner: Owner) {
        self.len -= 1;
        self.anonymous -= usize::from(owner.is_anonymous);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Owner = Owner::new(1, false);
    const B: Owner = Owner::new(2, false);
    const C: Owner = Owner::new(3, false);
    const X: Owner = Owner::new(4, true);
    const Y: Owner = Owner::new(5, true);

    fn filled(places: usize, parts: usize, owner: Owner) -> TurnQueue<(Owner, usize)> {
        let mut queue = TurnQueue::new(places, parts);
        for number in 0..places {
            assert_eq!(queue.push(owner, (owner, number)), Ok(None));
        }
        assert!(queue.push(owner, (owner, places)).is_err());
        queue
    }

    #[test]
    fn callers_take_turns_however_many_items_they_have() {
        let mut queue = TurnQueue::new(64, 2);
        for (owner, items) in [(A, 5), (B, 2), (C, 1)] {
            for number in 0..items {
                assert_eq!(queue.push(owner, (owner, number)), Ok(None));
            }
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        let expected = [
            (A, 0),
            (B, 0),
            (C, 0),
            (A, 1),
            (B, 1),
            (A, 2),
            (A, 3),
            (A, 4),
        ];
        assert_eq!(order, expected);
        assert!(queue.is_empty() && queue.items.is_empty());
    }

    #[test]
    fn caller_alone_has_all_places_and_gives_them_to_others_up_to_their_part() {
        let mut queue = filled(8, 2, A);
        for number in 0..4 {
            let left = queue.push(B, (B, number)).expect("a place");
            assert_eq!(left, Some((A, 7 - number)), "the newest one leaves");
        }
        assert!(queue.push(B, (B, 4)).is_err(), "half of the places");
        assert!(queue.push(A, (A, 8)).is_err());
        // A third caller displaces while another has more items than it.
        assert!(queue.push(C, (C, 0)).is_ok() && queue.push(C, (C, 1)).is_ok());
        assert!(queue.push(C, (C, 2)).is_err());
        assert_eq!(queue.len(), 8);
    }

    #[test]
    fn callers_without_a_credential_have_half_a_part_together() {
        let mut queue = filled(16, 2, X);
        assert!(
            queue.push(Y, (Y, 0)).is_ok(),
            "one of them is like another caller to the next"
        );
        for number in 0..8 {
            let left = queue
                .push(A, (A, number))
                .expect("a place")
                .expect("one leaves");
            assert!(left.0.is_anonymous());
        }
        assert_eq!((queue.count(A), queue.anonymous), (8, 8));
        assert!(queue.push(A, (A, 8)).is_err());
        assert!(queue.push(X, (X, 20)).is_err() && queue.push(Y, (Y, 20)).is_err());
        for number in 0..4 {
            let left = queue
                .push(B, (B, number))
                .expect("a place")
                .expect("one leaves");
            assert!(left.0.is_anonymous(), "they have more than half a part");
        }
        assert_eq!(queue.anonymous, 4);
        let left = queue.push(B, (B, 4)).expect("a place").expect("one leaves");
        assert_eq!(left.0, A, "the largest caller");
    }

    #[test]
    fn removed_items_leave_no_turn() {
        let mut queue = TurnQueue::new(8, 2);
        for (owner, number) in [(A, 0), (B, 1), (B, 2)] {
            queue.push_bounded(owner, (owner, number));
        }
        assert_eq!(queue.remove(A, |(_, number)| *number == 2), None);
        assert_eq!(queue.remove(A, |(_, number)| *number == 0), Some((A, 0)));
        assert_eq!(queue.remove_any(|(_, number)| *number == 2), Some((B, 2)));
        assert_eq!((queue.pop(), queue.pop()), (Some((B, 1)), None));
        queue.push_bounded(A, (A, 3));
        queue.push_bounded(B, (B, 4));
        assert_eq!(queue.drain().count(), 2);
        assert_eq!((queue.len(), queue.pop()), (0, None));
    }
}
