"""What Overheard's own pages state: measurements that repeat no paper."""
