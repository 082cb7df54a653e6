//! Lists, and the queue of each owner.

use crate::{Bounds, JobState, ListQuery};

use crate::tests::fake::new_job;

use super::{Bed, Make, on_each_store};

on_each_store! {
    list_has_the_jobs_of_the_owner_only_newest_first
    list_without_an_owner_is_empty_unless_all_are_asked_for
    list_has_pages_and_states
    queue_has_the_oldest_jobs_of_each_owner
}

fn owned(owner: &str) -> ListQuery {
    ListQuery {
        owner: Some(owner.to_owned()),
        limit: 100,
        ..ListQuery::default()
    }
}

fn ids(bed: &mut Bed, query: &ListQuery) -> Vec<String> {
    let page = bed.engine().list(query).unwrap();
    page.jobs.iter().map(|job| job.id.to_string()).collect()
}

fn list_has_the_jobs_of_the_owner_only_newest_first(make: Make) {
    let mut bed = make(Bounds::default());
    let jobs: Vec<_> = ["a", "b", "a", "a"]
        .map(|owner| new_job(Some(owner)))
        .into();
    for new in &jobs {
        bed.create(new);
    }
    let expected: Vec<String> = [3, 2, 0]
        .map(|place: usize| jobs[place].id.to_string())
        .into();
    assert_eq!(ids(&mut bed, &owned("a")), expected);
    assert!(ids(&mut bed, &owned("A")).is_empty());
}

fn list_without_an_owner_is_empty_unless_all_are_asked_for(make: Make) {
    let mut bed = make(Bounds::default());
    bed.create(&new_job(None));
    bed.create(&new_job(Some("a")));
    let mut query = ListQuery {
        limit: 100,
        ..ListQuery::default()
    };
    assert!(ids(&mut bed, &query).is_empty());
    query.all = true;
    assert_eq!(ids(&mut bed, &query).len(), 2);
}

fn list_has_pages_and_states(make: Make) {
    let mut bed = make(Bounds::default());
    let jobs: Vec<_> = (0..5).map(|_| new_job(Some("a"))).collect();
    for new in &jobs {
        bed.create(new);
    }
    bed.claim(&jobs[1].id).expect("it is queued");
    let (mut query, mut seen, mut pages) = (owned("a"), Vec::new(), 0);
    query.limit = 2;
    loop {
        let page = bed.engine().list(&query).unwrap();
        seen.extend(page.jobs.iter().map(|job| job.id.to_string()));
        pages += 1;
        query.cursor = page.next;
        // A job that is created between two pages does not move the others.
        bed.create(&new_job(Some("a")));
        if query.cursor.is_none() {
            break;
        }
    }
    let expected: Vec<String> = jobs.iter().rev().map(|new| new.id.to_string()).collect();
    assert_eq!((seen, pages), (expected, 3));
    let mut query = owned("a");
    query.state = Some(JobState::Running);
    assert_eq!(ids(&mut bed, &query), [jobs[1].id.to_string()]);
    query.cursor = Some("not a cursor".to_owned());
    assert!(ids(&mut bed, &query).is_empty());
}

fn queue_has_the_oldest_jobs_of_each_owner(make: Make) {
    let mut bed = make(Bounds::default());
    let owners = [Some("a"), Some("a"), None, Some("a"), Some("b"), None];
    let jobs = owners.map(new_job);
    for new in &jobs {
        bed.create(new);
    }
    bed.claim(&jobs[0].id).expect("it is queued");
    let queue = bed.engine().queued(1).unwrap();
    let seen: Vec<_> = queue
        .iter()
        .map(|owner| (owner.owner.as_deref(), owner.running, owner.jobs.len()))
        .collect();
    assert_eq!(seen, [(Some("a"), 1, 1), (None, 0, 1), (Some("b"), 0, 1)]);
    assert_eq!(queue[0].jobs[0].id, jobs[1].id);
    let queue = bed.engine().queued(2).unwrap();
    let numbers: Vec<usize> = queue.iter().map(|owner| owner.jobs.len()).collect();
    assert_eq!(numbers, [2, 2, 1]);
    assert_eq!(queue[0].jobs[1].id, jobs[3].id);
}
