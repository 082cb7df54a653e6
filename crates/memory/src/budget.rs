//! The memory budget for input of callers and answers of servers. Memory is charged before it is used, and the
//! charge is returned when the memory is freed. Lock-free.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;

use crate::turns::Owner;

/// The number of the next account.
static NEXT_OWNER: AtomicU64 = AtomicU64::new(1);

/// The fraction of the budget for one caller, and for one request.
const CALLER_PART: usize = 4;
/// The fraction of the budget that is reserved for small requests.
const RESERVED_PART: usize = 16;
/// Requests and results up to this size are not charged: the bound on connections bounds their memory, and small calls
/// need no accounting here.
pub const UNCHARGED_BYTES: usize = 16 << 10;
/// Maximum size of a small request or result.
pub const SMALL_BYTES: usize = 64 << 10;

/// The memory budget. Cheap to clone; all clones share one budget.
#[derive(Clone)]
pub struct MemoryBudget(Arc<Total>);

#[derive(Debug)]
struct Total {
    limit: AtomicUsize,
    used: AtomicUsize,
    /// The bytes that callers without a credential use together.
    anonymous: AtomicUsize,
}

/// The account of one caller. Cheap to clone; all clones share one account.
#[derive(Clone)]
pub struct Account(Arc<AccountState>);

#[derive(Debug)]
struct AccountState {
    total: Arc<Total>,
    used: AtomicUsize,
    bounds: Bounds,
    owner: Owner,
}

/// The part of the budget that an account may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bounds {
    /// All of it.
    Whole,
    /// The fraction of a caller.
    Caller,
    /// The same for a connection on this machine.
    Local,
    /// Half of that fraction, with all other callers without a credential.
    Anonymous,
}

/// Charged memory; returned on drop.
#[derive(Debug, Default)]
pub struct Charge {
    account: Option<Account>,
    bytes: usize,
}

/// The size class of a request or result that needs memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A small request or result. It may use the reserved part of the budget.
    Small,
    /// Any other request or result.
    Large,
}

/// The reason why a charge was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeError {
    /// The caller already holds its fraction of the budget.
    Caller,
    /// The whole budget is in use.
    Total,
}

impl Size {
    /// Returns the size class of a request or result of `bytes` bytes.
    pub const fn from_bytes(bytes: usize) -> Self {
        if bytes <= SMALL_BYTES {
            Self::Small
        } else {
            Self::Large
        }
    }
}

impl MemoryBudget {
    /// Makes a budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Total {
            limit: AtomicUsize::new(limit),
            used: AtomicUsize::new(0),
            anonymous: AtomicUsize::new(0),
        }))
    }

    /// Sets the limit to `limit` bytes. Memory that is already charged stays charged.
    pub fn set_limit(&self, limit: usize) {
        self.0.limit.store(limit, Ordering::Relaxed);
    }

    /// Returns the bytes that may be charged in all.
    pub fn limit(&self) -> usize {
        self.0.limit()
    }

    /// Returns the charged bytes.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Returns the account of one of several callers.
    pub fn account(&self) -> Account {
        self.open(Bounds::Caller)
    }

    /// Returns the account of one connection on this machine. Its caller has the same right as the callers of other
    /// local connections.
    pub fn local_account(&self) -> Account {
        self.open(Bounds::Local)
    }

    /// Returns the account of one of several callers that have no credential where others have one.
    pub fn anonymous_account(&self) -> Account {
        self.open(Bounds::Anonymous)
    }

    /// Returns the account of the only caller, or of no caller: it may hold the whole budget.
    pub fn whole_account(&self) -> Account {
        self.open(Bounds::Whole)
    }

    fn open(&self, bounds: Bounds) -> Account {
        let number = NEXT_OWNER.fetch_add(1, Ordering::Relaxed);
        Account(Arc::new(AccountState {
            total: Arc::clone(&self.0),
            used: AtomicUsize::new(0),
            bounds,
            owner: match bounds {
                Bounds::Local => Owner::local(number),
                Bounds::Whole | Bounds::Caller | Bounds::Anonymous => {
                    Owner::new(number, bounds == Bounds::Anonymous)
                }
            },
        }))
    }
}

impl Total {
    fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }
}

impl Account {
    /// Returns the caller whose account it is.
    #[inline]
    pub fn owner(&self) -> Owner {
        self.0.owner
    }

    /// Whether this is the only clone, so that no memory is charged to the account.
    pub fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Returns the maximum charge of one request, regardless of free memory.
    #[inline]
    pub fn request_limit(&self) -> usize {
        self.0.total.limit() / CALLER_PART
    }

    /// Charges `bytes`.
    pub fn charge(&self, bytes: usize, size: Size) -> Result<Charge, ChargeError> {
        let mut charge = Charge::default();
        charge.grow(self, bytes, size)?;
        Ok(charge)
    }

    fn take(&self, bytes: usize, size: Size) -> Result<(), ChargeError> {
        let AccountState {
            total,
            used,
            bounds,
            owner: _,
        } = &*self.0;
        let limit = total.limit();
        let (own, anonymous) = match bounds {
            Bounds::Whole => (limit, None),
            Bounds::Caller | Bounds::Local => (limit / CALLER_PART, None),
            Bounds::Anonymous => {
                let together = limit / CALLER_PART / 2;
                (together, Some(together))
            }
        };
        let all = match size {
            Size::Small => limit,
            Size::Large => limit - limit / RESERVED_PART,
        };
        if !add(used, bytes, own) {
            return Err(ChargeError::Caller);
        }
        if let Some(together) = anonymous
            && !add(&total.anonymous, bytes, together)
        {
            used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(ChargeError::Caller);
        }
        if !add(&total.used, bytes, all) {
            used.fetch_sub(bytes, Ordering::Relaxed);
            if anonymous.is_some() {
                total.anonymous.fetch_sub(bytes, Ordering::Relaxed);
            }
            return Err(ChargeError::Total);
        }
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        if self.0.bounds == Bounds::Anonymous {
            self.0.total.anonymous.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
        self.0.total.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Adds to the counter if the sum does not exceed `most`.
fn add(to: &AtomicUsize, bytes: usize, most: usize) -> bool {
    let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
    let sum = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= most);
    to.fetch_update(set, fetch, sum).is_ok()
}

impl Charge {
    /// Returns the charged bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Charges `bytes` more to `account`. All calls pass the same account.
    pub fn grow(&mut self, account: &Account, bytes: usize, size: Size) -> Result<(), ChargeError> {
        if bytes > 0 {
            account.take(bytes, size)?;
            self.account.get_or_insert_with(|| account.clone());
            self.bytes += bytes;
        }
        Ok(())
    }

    /// Raises the charge to `bytes`; an uncharged size leaves it unchanged.
    #[inline]
    pub fn cover(&mut self, account: &Account, bytes: usize) -> Result<(), ChargeError> {
        if bytes <= UNCHARGED_BYTES {
            return Ok(());
        }
        let missing = bytes.saturating_sub(self.bytes);
        self.grow(account, missing, Size::from_bytes(bytes))
    }

    /// Merges another charge of the same account into this one.
    pub fn join(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
        self.account = self.account.take().or(other.account.take());
    }

    /// Lowers the charge to `bytes` and returns the rest.
    #[inline]
    pub fn shrink(&mut self, bytes: usize) {
        let more = self.bytes.saturating_sub(bytes);
        if let Some(account) = &self.account {
            account.give_back(more);
        }
        self.bytes -= more;
    }

    /// Attaches the charge to `bytes`: it is returned when the last clone of the result is dropped.
    pub fn hold(self, bytes: impl AsRef<[u8]> + Into<Bytes> + Send + 'static) -> Bytes {
        if self.bytes == 0 {
            return bytes.into();
        }
        Bytes::from_owner(Charged {
            bytes,
            _charge: self,
        })
    }
}

impl Drop for Charge {
    #[inline]
    fn drop(&mut self) {
        self.shrink(0);
    }
}

struct Charged<B> {
    bytes: B,
    _charge: Charge,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Charged<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("used", &self.0.used)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ChargeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caller => "the requests of this caller use its part of the broker's memory",
            Self::Total => "the broker's memory is in use",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn memory_budget_limits_a_caller_and_reserves_for_small_requests() {
        let budget = MemoryBudget::new(64 * MIB);
        let one = budget.account();
        let held = one.charge(16 * MIB, Size::Large).unwrap();
        assert_eq!(one.charge(1, Size::Small).unwrap_err(), ChargeError::Caller);
        let others = [(); 2].map(|()| budget.account().charge(16 * MIB, Size::Large).unwrap());
        let last = budget.account();
        let _rest = last.charge(12 * MIB, Size::Large).unwrap();
        assert_eq!(last.charge(1, Size::Large).unwrap_err(), ChargeError::Total);
        let small = budget.account().charge(4 * MIB, Size::Small).unwrap();
        assert_eq!(budget.used(), 64 * MIB);
        assert_eq!(
            budget.account().charge(1, Size::Small).unwrap_err(),
            ChargeError::Total
        );
        drop((held, others, small));
        assert_eq!(budget.used(), 12 * MIB);
        assert!(one.charge(16 * MIB, Size::Large).is_ok());
    }

    #[test]
    fn memory_budget_of_a_single_caller_is_all_but_the_reserve() {
        let budget = MemoryBudget::new(64 * MIB);
        let sole = budget.whole_account();
        assert!(sole.charge(61 * MIB, Size::Large).is_err());
        assert!(sole.charge(60 * MIB, Size::Large).is_ok());
        assert_eq!(sole.request_limit(), 16 * MIB);
    }

    #[test]
    fn memory_budget_of_callers_without_a_credential_is_half_a_part_together() {
        let budget = MemoryBudget::new(64 * MIB);
        let (one, other) = (budget.anonymous_account(), budget.anonymous_account());
        let held = one.charge(6 * MIB, Size::Large).unwrap();
        let error = other.charge(3 * MIB, Size::Small).unwrap_err();
        assert_eq!(error, ChargeError::Caller);
        assert!(budget.account().charge(16 * MIB, Size::Large).is_ok());
        drop(held);
        assert!(other.charge(8 * MIB, Size::Large).is_ok());
        assert_eq!(
            (budget.used(), budget.0.anonymous.load(Ordering::Relaxed)),
            (0, 0)
        );
        assert!(one.owner() != other.owner() && one.owner().is_anonymous());
        assert_eq!(one.clone().owner(), one.owner());
    }

    #[test]
    fn memory_charge_grows_with_the_bytes_above_a_minimum() {
        let budget = MemoryBudget::new(MIB);
        let account = budget.account();
        let mut charge = Charge::default();
        charge.cover(&account, UNCHARGED_BYTES).unwrap();
        assert_eq!(budget.used(), 0);
        charge.cover(&account, UNCHARGED_BYTES + 1).unwrap();
        charge.cover(&account, 2 * UNCHARGED_BYTES).unwrap();
        assert_eq!(budget.used(), 2 * UNCHARGED_BYTES);
        assert!(charge.cover(&account, MIB).is_err());
        charge.shrink(10);
        assert_eq!((charge.bytes(), budget.used()), (10, 10));
    }

    #[test]
    fn memory_charge_is_returned_with_the_last_share() {
        let budget = MemoryBudget::new(MIB);
        let charge = budget.account().charge(100_000, Size::Large).unwrap();
        let bytes = charge.hold(vec![7; 100_000]);
        let share = bytes.slice(10..20);
        drop(bytes);
        assert_eq!(budget.used(), 100_000);
        assert_eq!(&share[..], &[7; 10]);
        drop(share);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn memory_charges_of_many_threads_stay_within_the_limit() {
        let budget = MemoryBudget::new(1000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..10_000 {
                        let account = budget.account();
                        let held = account.charge(n % 250, Size::Small);
                        assert!(budget.used() <= 1000);
                        drop(held);
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
    }
}
